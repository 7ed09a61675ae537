#!/bin/sh
# Makes the servers for the tests of kubernetes.object and kubernetes.node: a real kube-apiserver, built from Debian's
# source package, and Debian's etcd. As root on Debian 12, with its package sources: sh scripts/make-kube-apiserver.sh
# [FOLDER]. Takes 5 to 9 minutes on two cores, 4 GB of memory and 5 GB below $TMPDIR. Leaves 130 MB in the lab's folder,
# where test/support/kube-server.ts looks for them, and Go's packages and kubectl installed.
set -eu
version=1.20.2
out=${1:-${KCORE_LAB_DIR:-/var/lib/kcore-lab}/kube}
dir=$(mktemp -d "${TMPDIR:-/tmp}/kube-apiserver.XXXXXX")
sources=/etc/apt/sources.list.d/kcore-kube-apiserver.sources
# Go makes its packages read-only.
trap 'rm -f "$sources"; chmod -R u+w "$dir"; rm -rf "$dir"' EXIT

sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$sources"
apt-get update -q >/dev/null
apt-get install -q -y --no-install-recommends golang-go golang-github-modern-go-reflect2-dev dpkg-dev kubernetes-client >/dev/null
cd "$dir"
apt-get -o APT::Sandbox::User=root source -q --download-only kubernetes >/dev/null
apt-get -o APT::Sandbox::User=root download -q etcd-server >/dev/null
rm -f "$sources"

dpkg-deb -x etcd-server_*.deb etcd
mkdir -p go/src/k8s.io "$out"
tar -xzf kubernetes_*.orig.tar.gz -C go/src/k8s.io
mv go/src/k8s.io/kubernetes-* go/src/k8s.io/kubernetes
cd go/src/k8s.io/kubernetes
export GO111MODULE=off GOPATH="$dir/go" CGO_ENABLED=0 GOCACHE="$dir/cache"

# The reflect2 that comes with the source does not build with Go 1.18 and newer; Debian's does.
rm -rf vendor/github.com/modern-go/reflect2
cp -rL /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/reflect2
rm -f vendor/github.com/modern-go/reflect2/*_test.go

# Server-side apply needs the definitions of OpenAPI. They are generated from every package with a tag for them, on the
# package or on a type.
go build -o "$dir/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
packages=$(grep -rl --include='*.go' '^// *+k8s:openapi-gen=true' staging/src/k8s.io pkg cmd | grep -v -e _test.go -e /testdata/ -e /sample- |
  xargs -n1 dirname | sort -u | sed -e 's#^staging/src/#k8s.io/kubernetes/vendor/#' -e '/^k8s.io/!s#^#k8s.io/kubernetes/#' | paste -sd,)
"$dir/openapi-gen" -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
  -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r /dev/null --output-base "$dir/go/src"
sed -i 's#k8s.io/kubernetes/vendor/#k8s.io/#' pkg/generated/openapi/zz_generated.openapi.go
grep -q 'apimachinery/pkg/util/intstr.IntOrString"' pkg/generated/openapi/zz_generated.openapi.go

about=k8s.io/component-base/version
go build -ldflags "-s -w -X $about.gitVersion=v$version -X $about.gitMajor=1 -X $about.gitMinor=20" -o "$dir/kube-apiserver" ./cmd/kube-apiserver
install "$dir/kube-apiserver" "$dir/etcd/usr/bin/etcd" "$out"
ls -l "$out"
