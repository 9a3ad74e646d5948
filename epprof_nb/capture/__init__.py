"""The capture service, its sessions, and the correlation of what they recorded."""
