"""The soak: jobs drawn at random run as real processes, suffer random blows, and are judged by TensorFlow and TensorBoard."""
