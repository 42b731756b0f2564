"""`init`: the kind of each file by its content, its role, and the experiment file that follows."""
