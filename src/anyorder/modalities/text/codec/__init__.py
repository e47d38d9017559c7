"""The codec of text: what comes next is learned while it is read, in whole numbers only."""
