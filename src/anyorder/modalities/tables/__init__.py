"""Tables of any dataframe library."""
