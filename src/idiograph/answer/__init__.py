"""Questions put to a trained style."""
