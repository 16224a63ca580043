"""How ranks meet: who is there, how gradients are exchanged, how decisions are shared."""
