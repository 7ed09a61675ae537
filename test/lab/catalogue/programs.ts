import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { issueCertificate } from "#pki/certificate.ts";
import type { Sample } from "#support/sample.ts";

const noTool = (forWantOf: string) => ({ refuses: "TOOL_MISSING", forWantOf }) as const;
const year = 365 * 86_400_000;
const valid = { notBefore: new Date(Date.now() - year), notAfter: new Date(Date.now() + year) };
const [root, leaf] = [0, 1].map(() => generateKeyPairSync("ec", { namedCurve: "P-256" })) as [Pair, Pair];
type Pair = ReturnType<typeof generateKeyPairSync>;
const ca = issueCertificate({
  ...valid,
  commonName: "sample CA",
  publicKey: root.publicKey,
  signer: root.privateKey,
  pathLength: 0,
});
const certificate = issueCertificate({
  ...valid,
  commonName: "sample",
  publicKey: leaf.publicKey,
  signer: root.privateKey,
  issuer: new X509Certificate(ca),
  hosts: ["sample.example.org"],
});
const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" }) as string;

/** Podman with a file system of its own: a node's root is an overlay, on which there can be no other. */
const storage = `[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
`;
const registry = "localhost:5001";
const plainHttp = `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`;

/** A repository behind git's own daemon, an image in a file, and the same behind Debian's docker-registry. */
const serve = `set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
mkdir -p /srv/programs/registry && cd /srv/programs
git init -q -b main git/sample && git -C git/sample commit -q --allow-empty -m first
systemd-run -q --unit=sample-git /usr/bin/git daemon --export-all --base-path=/srv/programs/git --listen=127.0.0.1
cat >registry.yml <<'END'
version: 0.1
storage: { filesystem: { rootdirectory: /srv/programs/registry } }
http: { addr: "127.0.0.1:5001" }
END
systemd-run -q --unit=sample-registry docker-registry serve /srv/programs/registry.yml
echo sample >file && tar -cf root.tar file
for name in localhost/sample:1 ${registry}/sample:1; do podman import -q root.tar $name; done
podman save -q -o image.tar localhost/sample:1
for try in 1 2 3 4 5 6 7 8 9 10; do podman push -q ${registry}/sample:1 && break || sleep 1; done
podman rmi localhost/sample:1 ${registry}/sample:1
touch made`;

/** What programs bring that a node has not from the start: git, Podman; and services, certificates and boots. */
export const samples: readonly Sample[] = [
  {
    id: "file.managed storage",
    module: "file.managed",
    args: { path: "/etc/containers/storage.conf", content: storage, makeDirs: true },
    helps: true,
  },
  {
    id: "file.managed registry",
    module: "file.managed",
    args: { path: "/etc/containers/registries.conf.d/sample.conf", content: plainHttp, makeDirs: true },
    helps: true,
  },
  {
    id: "package.installed programs",
    module: "package.installed",
    args: { names: ["git", "podman", "docker-registry"], updateCache: true },
    helps: true,
  },
  {
    id: "script.run programs",
    module: "script.run",
    args: { text: serve },
    keys: { creates: "/srv/programs/made", require: ["package.installed programs"] },
    helps: true,
  },
  {
    id: "git.cloned",
    module: "git.cloned",
    args: { path: "/srv/clone", url: "git://127.0.0.1/sample", ref: "main" },
    keys: { require: ["script.run programs"] },
    busybox: noTool("git"),
    drift: {
      by: "git -C /srv/programs/git/sample -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m next",
      finds: { commit: /^[0-9a-f]{40}, [0-9a-f]{40} is there$/ },
    },
    refusal: { args: { path: "/srv/clone", url: "git://127.0.0.1/sample", ref: "none" }, code: "GIT_FAILED" },
  },
  {
    id: "container.image",
    module: "container.image",
    args: { name: "localhost/sample:1", archive: "/srv/programs/image.tar" },
    keys: { require: ["script.run programs"] },
    busybox: noTool("podman"),
    drift: { by: "podman rmi localhost/sample:1", finds: { image: "absent" } },
    refusal: { args: { name: "localhost/none:1", pull: "never" }, code: "IMAGE_FAILED" },
  },
  {
    id: "container.image pulled",
    module: "container.image",
    args: { name: `${registry}/sample:1` },
    keys: { require: ["script.run programs"] },
    busybox: noTool("podman"),
    drift: { by: `podman rmi ${registry}/sample:1`, finds: { image: "absent" } },
    refusal: { args: { name: `${registry}/none:1` }, code: "IMAGE_FAILED" },
  },
  {
    id: "http.ready",
    module: "http.ready",
    args: { url: "http://127.0.0.1:8099/file", contains: "from a server" },
    isCheck: true,
    busybox: "converges",
  },
  {
    id: "certificate.dropped",
    module: "certificate.dropped",
    args: {
      path: "/srv/tls/sample.crt",
      content: certificate,
      ca: { path: "/srv/tls/ca.crt", content: ca },
      key: "/srv/tls/sample.key",
    },
    busybox: noTool("openssl"),
    before: `mkdir -p /srv/tls && cat >/srv/tls/sample.key <<'END'\n${key}END`,
    drift: { by: "cp /srv/tls/ca.crt /srv/tls/sample.crt", finds: { content: /^sha256:/, key: "differs" } },
    refusal: {
      args: {
        path: "/srv/tls/sample.crt",
        content: ca,
        ca: { path: "/srv/tls/ca.crt", content: ca },
        key: "/srv/tls/sample.key",
      },
      code: "CERTIFICATE_KEY_MISMATCH",
    },
  },
  {
    id: "network.interface",
    module: "network.interface",
    args: { name: "k1", addresses: ["192.0.2.130/25"], mtu: 1400 },
    before: "[ -e /sys/class/net/k1 ] || ip link add k1 type veth peer name p1; ip link set p1 up",
    drift: { by: "ip addr del 192.0.2.130/25 dev k1", finds: { "address 192.0.2.130/25": "absent" } },
    refusal: { args: { name: "none0", addresses: ["192.0.2.9/24"] }, code: "NETWORK_UNMANAGED" },
  },
  {
    id: "service.current",
    module: "service.current",
    args: {},
    isCheck: true,
    busybox: noTool("systemctl"),
    before: `mkdir -p /opt/sample && cp /bin/sleep /opt/sample/sleep && systemctl is-active -q sample-old ||
systemd-run -q --unit=sample-old -p Restart=always /opt/sample/sleep infinity`,
    drift: {
      by: "cp /bin/sleep /opt/sample/new && mv -f /opt/sample/new /opt/sample/sleep",
      finds: { replaced: "sample-old.service" },
    },
  },
  // That they boot, test/lab/modules.test.ts tries: what other samples started would not be there any more.
  {
    id: "reboot.done",
    module: "reboot.done",
    args: { ifFile: "/run/sample-reboot" },
    isCheck: true,
    busybox: "converges",
  },
  {
    id: "reboot.ifRequired",
    module: "reboot.ifRequired",
    args: {},
    isCheck: true,
    busybox: "converges",
  },
];
