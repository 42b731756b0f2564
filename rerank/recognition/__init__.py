"""Recognition: what files are, by their content, what they are for, and the experiment file that follows."""
