import type { Sample } from "#support/sample.ts";

const numbers = Array.from({ length: 7 }, (_, index) => index + 1);

/** Some modules repeatedly, as on a real machine, so that all samples together are a state of a hundred steps. */
export const samples: readonly Sample[] = [
  ...numbers.map((n): Sample => ({
    id: `directory.managed many ${n}`,
    module: "directory.managed",
    args: { path: `/srv/many/${n}`, makeDirs: true, mode: "0755" },
    busybox: "converges",
    drift: { by: `chmod 700 /srv/many/${n}`, finds: { mode: "0700" } },
  })),
  ...numbers.map((n): Sample => ({
    id: `file.managed many ${n}`,
    module: "file.managed",
    args: { path: `/srv/many/${n}/file`, content: `number ${n}\n` },
    busybox: "converges",
    drift: { by: `echo other >/srv/many/${n}/file`, finds: { content: /^sha256:/ } },
  })),
  ...numbers.map((n): Sample => ({
    id: `file.line many ${n}`,
    module: "file.line",
    args: { path: "/srv/many/lines", line: `key${n}=${n}`, match: `^key${n}=`, create: true },
    busybox: "converges",
    drift: { by: `sed -i 's/^key${n}=.*/key${n}=changed/' /srv/many/lines`, finds: { line: `key${n}=changed` } },
  })),
  ...numbers.map((n): Sample => ({
    id: `file.block many ${n}`,
    module: "file.block",
    args: { path: "/srv/many/blocks", name: `block ${n}`, content: `a ${n}\nb ${n}\n`, create: true },
    busybox: "converges",
    drift: { by: `sed -i '/^a ${n}$/d' /srv/many/blocks`, finds: {} },
  })),
  ...numbers.map((n): Sample => ({
    id: `hosts.entry many ${n}`,
    module: "hosts.entry",
    args: { address: `198.51.100.${n}`, names: [`many${n}.example.net`, `many${n}`] },
    busybox: "converges",
    drift: {
      by: `cp /etc/hosts /tmp/h && sed '/many${n}\\.example/d' /tmp/h >/etc/hosts`,
      finds: { [`many${n}`]: "absent" },
    },
  })),
];
