"""What documents are: by rules, by what an org's people have taught, by what they confirm; with reasons."""
