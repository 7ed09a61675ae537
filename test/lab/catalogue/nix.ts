import type { Sample } from "#support/sample.ts";

const profile = "/nix/var/nix/profiles/sample";

/** What `nix-store --add` calls a file named g2 that holds a 2. */
const second = "/nix/store/5wv0j60v3b73dfan67ciwjbbbnhyflh6-g2";

/** So many generations more, each a path of its own. */
const generations = (...numbers: readonly number[]): string =>
  numbers
    .map(
      (n) =>
        `echo ${n} >/tmp/g${n} && NIX_REMOTE= nix-env -p ${profile} --set $(NIX_REMOTE= nix-store --add /tmp/g${n})`,
    )
    .join(" && ");

/** Nix from Debian's packages, which the lab serves. */
export const samples: readonly Sample[] = [
  {
    id: "nix.installed",
    module: "nix.installed",
    args: { substituters: [], settings: { "max-jobs": 2 } },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "systemctl" },
    drift: {
      by: "sed -i 's/^max-jobs.*/max-jobs = 9/' /etc/nix/nix.conf && systemctl stop nix-daemon.socket nix-daemon.service",
      finds: { daemon: "inactive", "setting max-jobs": "9" },
    },
  },
  {
    id: "command.run generations",
    module: "command.run",
    args: { cmd: generations(1, 3, 2, 4) },
    keys: { creates: profile, require: ["nix.installed"] },
    helps: true,
  },
  {
    id: "nix.profile",
    module: "nix.profile",
    args: { profile, path: second },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "nix-store" },
    drift: { by: `nix-env -p ${profile} --rollback`, finds: { profile: /-g[1-4]$/ } },
    refusal: { args: { profile, path: second.replace("-g2", "-g9") }, code: "NIX_PATH_DIFFERS" },
  },
  {
    id: "nix.collected",
    module: "nix.collected",
    args: { keep: 2, profiles: ["sample"] },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "nix-env" },
    drift: { by: generations(5, 6, 2), finds: { surplus: new RegExp(`^${profile} [1-9]`) } },
  },
];
