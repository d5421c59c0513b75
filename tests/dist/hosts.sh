# SPDX-License-Identifier: Apache-2.0
# Hosts for tests, to be sourced by bash, as root: network namespaces on a bridge, whose processes have a name, IPC and /dev/shm of
# their own, so that nothing takes them for one host.
#
#   hosts_up N            hosts 1 to N with the addresses of hosts_address; false without rights
#   hosts_down            removes them
#   on_host I COMMAND...  runs it there; needs hosts_up
#   hosts_limit ARG...    a queue discipline of tc for what each host sends; without ARG none
#   hosts_join_poorly COMMAND...   hosts 1 and 2 by that program of poor_link.c: 50 ms to and fro, and 1 % of what is sent is lost
#   hosts_join_well       as before
#   hosts_file N          writes them as a file for frit launch --hosts and mpirun, with N ranks on each
#   hosts_agent           writes a script that mpirun can call in the place of ssh

hosts_net=fh$$ hosts_n=0

hosts_address() { echo "10.77.0.$1"; }

hosts_up() {
  local i
  ip netns add "$hosts_net" 2>/dev/null || return
  hosts_n=$1
  ip -n "$hosts_net" link add bridge type bridge && ip -n "$hosts_net" link set bridge up || return
  for ((i = 1; i <= hosts_n; i++)); do
    ip netns add "$hosts_net-$i" && ip -n "$hosts_net-$i" link set lo up &&
      ip -n "$hosts_net-$i" link add eth0 type veth peer name "port$i" netns "$hosts_net" &&
      ip -n "$hosts_net-$i" addr add "$(hosts_address "$i")/24" dev eth0 && ip -n "$hosts_net-$i" link set eth0 up &&
      ip -n "$hosts_net" link set "port$i" master bridge up || return
  done
}

hosts_down() {
  local i
  for ((i = 1; i <= hosts_n; i++)); do ip netns delete "$hosts_net-$i"; done 2>/dev/null
  ip netns delete "$hosts_net" 2>/dev/null
}

on_host() {
  local i=$1
  shift
  ip netns exec "$hosts_net-$i" unshare -m -u -i sh -c 'hostname "host$0"; mount -t tmpfs tmpfs /dev/shm; exec "$@"' "$i" "$@"
}

hosts_limit() {
  local i
  for ((i = 1; i <= hosts_n; i++)); do
    ip netns exec "$hosts_net-$i" tc qdisc del dev eth0 root 2>/dev/null
    [ $# = 0 ] || ip netns exec "$hosts_net-$i" tc qdisc add dev eth0 root "$@" || return
  done
}

hosts_join_poorly() {
  ip -n "$hosts_net" link set port1 nomaster && ip -n "$hosts_net" link set port2 nomaster || return
  ip netns exec "$hosts_net" "$@" port1 port2 25 10 &
  hosts_link=$!
}

hosts_join_well() {
  kill "$hosts_link"
  wait "$hosts_link" 2>/dev/null
  ip -n "$hosts_net" link set port1 master bridge && ip -n "$hosts_net" link set port2 master bridge
}

hosts_file() {
  local i
  for ((i = 1; i <= hosts_n; i++)); do echo "$(hosts_address "$i") slots=$1"; done
}

hosts_agent() { # AGENT ADDRESS COMMAND...
  cat <<END
#!/usr/bin/env bash
hosts_net=$hosts_net
$(declare -f on_host)
address=\$1
shift
on_host "\${address##*.}" sh -c "\$*"
END
}
