"""The functional core: it decides and does nothing else.

No I/O, no clock, no logging, no asyncio, and nothing imported but the standard library
and this package. Time is an argument: seconds of CLOCK_BOOTTIME as a float.
"""
