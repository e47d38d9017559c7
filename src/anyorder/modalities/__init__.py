"""What a kind of data is: how it is read, its default model, its verbs, its codec."""
