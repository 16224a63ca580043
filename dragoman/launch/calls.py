"""What `launch` asks of the agent on another host. Arguments and answers are plain JSON.

Functions are named by text, so an agent imports only what it is asked for.
"""

CALLS = {
    "open_door": "dragoman.launch.meeting:open_door",
    "knock": "dragoman.launch.meeting:knock",
    "close_door": "dragoman.launch.meeting:close_door",
    "interface_towards": "dragoman.sync.route:interface_towards",
    "data_fingerprint": "dragoman.launch.copy:data_fingerprint",
    "make_room": "dragoman.launch.copy:make_room",
}
