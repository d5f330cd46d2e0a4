import socket

closed = [
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fe80::1",
    "fd00::2",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::0a00:0001",
    "2002:a9fe:a9fe::1",
    "2001::1",
    "0.0.0.1",
    "255.255.255.255",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "198.18.0.1",
    "192.0.2.2",
    "2852039166",
    "0xa9fea9fe",
    "169.254.43518",
    "0251.0376.0251.0376",
]
for host in closed:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            family, _, _, _, address = socket.getaddrinfo(host, 80, type=kind)[0]
            with socket.socket(family, kind) as one:
                one.settimeout(2)
                one.connect(address)
                if kind == socket.SOCK_DGRAM:
                    one.send(b"x")
                print("GOT IN:", host, kind)
        except TimeoutError as error:
            print("GOT IN: nobody refused", host, error)
        except OSError as error:
            print("closed", host, error)
print("tried")
