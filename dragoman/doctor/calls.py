"""The functions that the doctor calls through the agent on another host; see launch/calls.py."""

TABLE = "dragoman.doctor.calls"

CALLS = {
    "inspect": "dragoman.doctor.host:inspect",
    "clock": "dragoman.doctor.host:clock",
    "resolve": "dragoman.doctor.host:resolve",
    "listen": "dragoman.doctor.link:listen",
    "connect": "dragoman.doctor.link:connect",
    "trial_outcome": "dragoman.doctor.trial:outcome",
    "remove_trial": "dragoman.doctor.trial:remove",
}
