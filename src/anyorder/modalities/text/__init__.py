"""Text: gaps restored, typos found, passages scored and drawn, files compressed."""
