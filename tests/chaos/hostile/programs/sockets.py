import socket

wanted = [
    (socket.AF_INET, socket.SOCK_RAW, 1),
    (socket.AF_INET6, socket.SOCK_RAW, 58),
    (socket.AF_INET, socket.SOCK_RAW, 255),
    (socket.AF_INET, socket.SOCK_DGRAM, 1),
    (17, socket.SOCK_RAW, 768),
    (17, socket.SOCK_DGRAM, 768),
    (40, socket.SOCK_STREAM, 0),
    (16, socket.SOCK_RAW, 9),
    (16, socket.SOCK_RAW, 12),
    (38, 5, 0),
    (31, socket.SOCK_RAW, 1),
    (socket.AF_INET, socket.SOCK_STREAM, 262),
    (socket.AF_INET, socket.SOCK_STREAM, 132),
    (socket.AF_INET, 5, 132),
    (21, 5, 0),
    (44, socket.SOCK_RAW, 0),
    (30, 1, 0),
]
for family, kind, protocol in wanted:
    try:
        socket.socket(family, kind, protocol).close()
        print("GOT IN:", family, kind, protocol)
    except OSError as error:
        print("closed", error)
print("tried")
