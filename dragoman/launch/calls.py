"""The functions that `launch` may call through the agent on another host, with plain JSON in and out.

They are named as text, so an agent imports only the modules whose functions are called.
"""

CALLS = {
    "listen_for_hosts": "dragoman.launch.meeting:listen_for_hosts",
    "reachable_addresses": "dragoman.launch.meeting:reachable_addresses",
    "stop_listening": "dragoman.launch.meeting:stop_listening",
    "interface_towards": "dragoman.sync.route:interface_towards",
    "data_fingerprint": "dragoman.launch.copy:data_fingerprint",
    "living_launcher": "dragoman.launch.launcher:living_launcher",
    "launcher_news": "dragoman.launch.launcher:launcher_news",
    "stop_launcher": "dragoman.launch.launcher:stop_launcher",
    "hosts_out_of_reach": "dragoman.launch.detached:hosts_out_of_reach",
    "start_detached": "dragoman.launch.detached:start_detached",
    "prepare_folder": "dragoman.launch.copy:prepare_folder",
}
