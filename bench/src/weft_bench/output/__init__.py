"""Reports as tables for a terminal, and charts as SVG and as text."""
