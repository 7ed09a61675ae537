#!/bin/sh
# join-etcd.sh NAME PEER-URL ENDPOINT: announces a member to the cluster, unless it is, and writes with which others it starts.
set -eu
name=$1 peer=$2
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS="$3"
export ETCDCTL_CACERT=/etc/etcd/pki/ca.crt ETCDCTL_CERT=/etc/etcd/pki/member.crt ETCDCTL_KEY=/etc/etcd/pki/member.key
members=$(etcdctl member list)
case "$members" in
  *"$peer"*) ;;
  *) etcdctl member add "$name" --peer-urls="$peer" && members=$(etcdctl member list) ;;
esac
# ID, status, name (none before it first started), peer URLs …
cluster=$(printf '%s\n' "$members" | awk -F', ' -v me="$name" '{ printf "%s%s=%s", comma, $3 == "" ? me : $3, $4; comma = "," }')
printf 'ETCD_INITIAL_CLUSTER_STATE=existing\nETCD_INITIAL_CLUSTER=%s\n' "$cluster" >/etc/etcd/.cluster.env
mv /etc/etcd/.cluster.env /etc/etcd/cluster.env
