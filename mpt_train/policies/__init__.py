"""Who acts: what every policy does (`base`), small networks (`swarm`), agents in text (`text`)."""
