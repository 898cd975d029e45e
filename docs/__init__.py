"""Pages for readers, and the programs that make parts of them: references, pictures."""
