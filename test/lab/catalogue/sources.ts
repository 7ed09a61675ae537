import { readFileSync } from "node:fs";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Sample } from "#support/sample.ts";

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, "../../fixtures", name), "utf8");

/** What a small server on the node gives. */
const served = "from a server\n";

/** Each connection is one answer: systemd hands it to a shell; on a BusyBox node its own httpd serves the file. */
const serve = `mkdir -p /srv/http && printf '${served.replace("\n", "\\n")}' >/srv/http/file
if command -v systemd-run >/dev/null; then
  cat >/srv/http/answer <<'END'
while read -r line; do case $line in [!\\ -~]* | '') break ;; esac; done
printf 'HTTP/1.0 200 OK\\r\\nContent-Length: ${served.length}\\r\\n\\r\\n' && cat /srv/http/file
END
  systemctl is-active -q kcore-sample-http ||
    systemd-run -q --unit=kcore-sample-http systemd-socket-activate -l 127.0.0.1:8099 --inetd -a /bin/sh /srv/http/answer
else
  busybox httpd -p 127.0.0.1:8099 -h /srv/http
fi
sleep 1`;

/** A kernel's package of the next version, in a repository of its own; the lab's nodes have no kernel. */
const nextKernel = `cat >/srv/kernels/next <<'END'
set -e
cd /srv/kernels
version=$(($(cat version 2>/dev/null || echo 0) + 1))
rm -rf tree ./*.deb && mkdir -p tree/DEBIAN
printf '%s\n' 'Package: linux-image-sample' "Version: $version" 'Architecture: all' 'Maintainer: A Sample <sample@example.org>' \
  'Description: a sample' >tree/DEBIAN/control
dpkg-deb -b tree kernel.deb >/dev/null && sum=$(sha256sum <kernel.deb)
{ dpkg-deb -f kernel.deb && echo "Filename: ./kernel.deb" && stat -c 'Size: %s' kernel.deb && echo "SHA256: \${sum%% *}"; } >Packages
echo $version >version
END
echo 'deb [trusted=yes] file:/srv/kernels ./' >/etc/apt/sources.list.d/kernels.list
sh /srv/kernels/next && dpkg -i /srv/kernels/kernel.deb && sh /srv/kernels/next && apt-get -q update`;

export const samples: readonly Sample[] = [
  {
    id: "package.repository",
    module: "package.repository",
    args: {
      name: "kcore-sample",
      uris: "file:/srv/repository",
      suites: "./",
      key: fixture("repository/key.asc"),
      fingerprint: "C92C8DA47CCE6F7767C2F2B67102A0D104A5A332",
    },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "apt-get" },
    before: `mkdir -p /srv/repository && : >/srv/repository/Packages && cat >/srv/repository/InRelease <<'END'
${fixture("repository/InRelease")}END`,
    drift: {
      by: "echo 'Trusted: yes' >>/etc/apt/sources.list.d/kcore-sample.sources && chmod 600 /etc/apt/keyrings/kcore-sample.asc",
      finds: { source: /^sha256:/, "key mode": "0600" },
    },
    refusal: {
      args: {
        name: "kcore-sample-b",
        uris: "file:/srv/repository",
        suites: "./",
        key: fixture("repository/other.asc"),
      },
      code: "REPOSITORY_UNUSABLE",
    },
  },
  {
    id: "kernel.updated",
    module: "kernel.updated",
    args: {},
    busybox: { refuses: "TOOL_MISSING", forWantOf: "apt-get" },
    before: `mkdir -p /srv/kernels && ${nextKernel}`,
    drift: {
      by: "sh /srv/kernels/next && apt-get -q update",
      finds: { kernel: /^linux-image-sample \d+: \d+ is there$/ },
    },
  },
  {
    id: "package.upgraded",
    module: "package.upgraded",
    args: {},
    // A new node has nothing that is older than what the lab serves, and the step before has fetched the lists.
    isCheck: true,
    busybox: { refuses: "TOOL_MISSING", forWantOf: "apt-get" },
    drift: {
      by: "touch -d @0 /var/lib/apt/lists && find / -xdev -name lists-updated -exec touch -d @0 {} +",
      finds: { lists: "old" },
    },
  },
  {
    id: "package.installed curl",
    module: "package.installed",
    helps: true,
    args: { name: "curl", updateCache: true },
  },
  {
    id: "file.downloaded",
    module: "file.downloaded",
    args: {
      path: "/srv/downloaded/file",
      url: "http://127.0.0.1:8099/file",
      sha256: blobOf(served).sha256,
      mode: "0640",
      makeDirs: true,
    },
    busybox: "converges",
    before: serve,
    drift: {
      by: "echo more >>/srv/downloaded/file && chmod 644 /srv/downloaded/file",
      finds: { content: /^sha256:/, mode: "0644" },
    },
    refusal: {
      args: { path: "/srv/downloaded/other", url: "http://127.0.0.1:8099/file", sha256: blobOf("other").sha256 },
      code: "DOWNLOAD_DIFFERS",
    },
  },
  {
    id: "archive.extracted",
    module: "archive.extracted",
    args: { path: "/srv/unpacked", archive: "/srv/archive.tar.gz", strip: 1 },
    busybox: "converges",
    before:
      "mkdir -p /srv/in/top/sub && echo a >/srv/in/top/sub/a && ln -sf sub/a /srv/in/top/b && tar -C /srv/in -czf /srv/archive.tar.gz top",
    drift: {
      by: "rm /srv/unpacked/sub/a",
      finds: { tree: /^gone or changed: .*sub\/a/ },
    },
    refusal: {
      args: { path: "/srv/unsafe", archive: "/srv/unsafe.tar.gz" },
      code: "ARCHIVE_UNSAFE",
      before:
        "cp /srv/in/top/sub/a /srv/in/suid && chmod 4755 /srv/in/suid && tar -C /srv/in -czf /srv/unsafe.tar.gz suid",
      after: "rm -f /srv/unsafe.tar.gz /srv/in/suid",
    },
  },
  {
    id: "ca.trusted",
    module: "ca.trusted",
    args: { name: "kcore-sample", certificate: fixture("example-ca.pem") },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "update-ca-certificates" },
    drift: {
      by: "rm /usr/local/share/ca-certificates/kcore-sample.crt && update-ca-certificates",
      finds: { certificate: "absent", trusted: "no" },
    },
  },
];
