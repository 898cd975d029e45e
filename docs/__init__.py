"""Pages for readers, and the program that makes the reference of one of them."""
