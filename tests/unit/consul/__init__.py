"""Requests and answers, tokens and limits, without a Consul."""
