"""Paper 4's figures: policies for queries with SLIDE AT MOST, on a simulated clock."""
