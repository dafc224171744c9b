"""Former homes of modules of `engine` and `leave_one_out`; to be removed."""
