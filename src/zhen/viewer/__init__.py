"""Made visible: what attention looks at (page, picture, table), and what a corpus holds."""
