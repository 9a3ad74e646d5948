"""The recorder of the host device."""
