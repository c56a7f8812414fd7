"""From a question to its receipt, in whichever channel it is asked."""
