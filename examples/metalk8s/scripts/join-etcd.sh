#!/bin/sh
# join-etcd.sh NAME PEER-URL ENDPOINT: announces a new member to the cluster, and writes the list of members with which it starts.
set -eu
name=$1 peer=$2
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS="$3"
export ETCDCTL_CACERT=/etc/etcd/pki/ca.crt ETCDCTL_CERT=/etc/etcd/pki/member.crt ETCDCTL_KEY=/etc/etcd/pki/member.key
members=$(etcdctl member list)
case "$members" in
  *"$peer"*) ;;
  *) etcdctl member add "$name" --peer-urls="$peer" && members=$(etcdctl member list) ;;
esac
# A line has: ID, status, name (empty before the member's first start), peer URLs …
cluster=$(printf '%s\n' "$members" | awk -F', ' -v me="$name" '{ printf "%s%s=%s", comma, $3 == "" ? me : $3, $4; comma = "," }')
printf 'ETCD_INITIAL_CLUSTER_STATE=existing\nETCD_INITIAL_CLUSTER=%s\n' "$cluster" >/etc/etcd/.cluster.env
mv /etc/etcd/.cluster.env /etc/etcd/cluster.env
