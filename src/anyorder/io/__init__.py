"""Files and data sets: written whole or not at all, read with bounds on what they say."""
