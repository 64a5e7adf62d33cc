"""What is built on the suite: reproductions of papers, the choice of a connection, a block of one's own, advice."""
