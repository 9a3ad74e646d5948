"""Jobs: the profiles of several processes as one."""
