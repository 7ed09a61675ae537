import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import type { Blob } from "../step/blob.ts";
import { defineModule, type StepContext } from "../step/define.ts";
import { Sha256 } from "../step/fields.ts";
import { apt, finishDpkg, isCutOff } from "../step/fragments/packages.ts";
import { installNixTarball } from "../step/fragments/nix-tarball.ts";
import { pathsOf } from "../step/effects.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const daemonUnits = ["nix-daemon.socket", "nix-daemon.service"] as const;

/** Seconds to wait for apt's lock. */
const lockTimeout = 300;

const conf = "/etc/nix/nix.conf";

const Word = z.string().regex(/^[^\s#]+$/, "must be one word");

const Setting = z.union([
  z.string().regex(/^[^\n#\0]*$/, "must be one line without “#”"),
  z.number(),
  z.boolean(),
  z.array(Word),
]);

const args = z
  .strictObject({
    method: z
      .enum(["package", "tarball"])
      .default("package")
      .describe("Debian's nix-bin and nix-setup-systemd, or a release tarball that the bastion sends."),
    source: z.string().optional().describe("The tarball on the bastion: nix-VERSION-SYSTEM.tar.xz, .tar.gz or .tar."),
    sha256: Sha256.optional().describe("The tarball's SHA-256, as its publisher gives it."),
    buildUsers: z.int().min(1).max(64).default(10).describe("How many nixbld users a tarball's installation makes."),
    updateCache: z.boolean().default(true).describe("Fetch the package lists first (method package)."),
    substituters: z
      .array(Word)
      .optional()
      .describe("Binary caches that Nix may fetch from; with an empty list Nix works offline."),
    trustedKeys: z
      .array(
        z
          .string()
          .regex(
            /^[^\s#:]+:[A-Za-z0-9+/]{43}=$/,
            "must be a public key NAME:KEY, as nix key convert-secret-to-public prints it",
          ),
      )
      .optional()
      .describe("Public keys of the binary caches, NAME:KEY."),
    settings: z
      .record(z.string().regex(/^[a-z][a-z0-9-]*$/, "must be a setting of nix.conf(5)"), Setting)
      .default({})
      .describe(
        "Settings that nix.conf shall have, before substituters and trustedKeys; other settings in nix.conf stay.",
      ),
  })
  .refine(
    ({ method, source, sha256 }) => method === "package" || (source !== undefined && sha256 !== undefined),
    "method tarball needs source and sha256",
  );
type Args = z.output<typeof args>;

/**
 * ```yaml
 * nix.installed:
 *   method: package
 *   substituters: [https://cache.example.org]
 *   trustedKeys: ["cache.example.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY="]
 *   settings: { max-jobs: 2, trusted-users: [root] }
 * ```
 * Nix with its daemon (multi-user). A missing Nix is installed by either method; a present one of any origin is kept.
 * The daemon must answer. On NixOS the settings belong into the node's flake.
 */
export const nixInstalled = defineModule({
  name: "nix.installed",
  summary: "Keeps Nix installed, its daemon running, and settings in nix.conf.",
  alsoKnownAs: ["nix"],
  args,
  refusals: [
    "FILE_NO_PARENT",
    "FILE_PARENT_UNSAFE",
    "NIXOS_MANAGED",
    "NIX_INSTALL_FAILED",
    "PACKAGE_INTERRUPTED",
    "PACKAGE_LOCKED",
    "TOOL_MISSING",
  ],
  step: (given, context) => {
    const settings = Object.entries(settingsOf(given)).map(([name, value]) => ({ name, text: settingText(value) }));
    const tarball = given.method === "tarball" ? readTarball(given, context) : undefined;
    return {
      brings: true,
      effects: {
        writes: [
          { is: "packages", known: true },
          ...["/nix", "/etc/nix"].map((path) => ({ is: "tree", path }) as const),
          ...daemonUnits.map((name) => ({ is: "service", name }) as const),
        ],
        reads: [
          { is: "packages" },
          ...pathsOf(["/nix/store", conf]),
          ...daemonUnits.map((name) => ({ is: "service", name }) as const),
        ],
      },
      want: {
        nix: "installed",
        packages: "whole",
        daemon: "active",
        boot: "enabled",
        answers: "yes",
        ...Object.fromEntries(settings.map(({ name, text }) => [`setting ${name}`, text])),
      },
      probe: sh`${readNix}
fact nix "$nix"
fact version "$version"
if ${isCutOff}; then fact packages "cut off"; else fact packages whole; fi
fact daemon "$daemon"
fact boot "$boot"
fact answers "$answers"
${shLines(settings.map(({ name }) => sh`fact ${`setting ${name}`} "$(${printSetting(name)})"`))}`,
      guard: settings.length === 0 ? sh`:` : sh`not_nixos ${conf}`,
      apply: sh`${finishDpkg({ lockTimeout })}
${readNix}
if [ "$nix" = absent ]; then
  ${tarball ? installNixTarball({ name: given.source ?? "", blob: tarball, buildUsers: given.buildUsers }) : installPackages(given)}
fi
changed=
# Nix does not flush this file: a power cut leaves it empty, and then Nix reports a corrupt database. If the file is
# missing, Nix writes it again; the database itself survives a power cut.
schema=/nix/var/nix/db/schema
[ ! -e "$schema" ] || [ -s "$schema" ] || { rm -f "$schema" && changed=yes; }
${shLines(settings.map(({ name, text }) => writeSetting(name, text)))}
# The socket starts the service on demand. systemd refuses to start the socket while the service runs, and Debian's
# package starts the service.
daemon_unit=nix-daemon.socket
systemctl cat "$daemon_unit" >/dev/null 2>&1 || daemon_unit=nix-daemon.service
systemctl enable -q "$daemon_unit" || exit 1
systemctl is-active -q nix-daemon.service || systemctl start "$daemon_unit" || exit 1
# The daemon reads its settings only at its start.
[ -z "$changed" ] || systemctl try-restart nix-daemon.service || exit 1
${readNix}
# A service that started before its socket (under load) may listen on a socket that is no longer at its path.
[ "$answers" = yes ] || {
  systemctl stop nix-daemon.service nix-daemon.socket 2>/dev/null
  systemctl start "$daemon_unit" || exit 1
  ${readNix}
}
[ "$answers" = yes ] ||
  refuse NIX_INSTALL_FAILED "Nix is installed, but its daemon does not answer$K_NL$(systemctl status --no-pager -l nix-daemon.socket nix-daemon.service 2>&1)"
# The installation must survive a power cut.
sync`,
      tools: [{ command: "systemctl", package: "systemd" }],
      timeout: 7200,
      stall: 600,
    };
  },
});

function settingsOf({ substituters, trustedKeys, settings }: Args): Args["settings"] {
  return {
    ...(substituters && { substituters }),
    ...(trustedKeys && trustedKeys.length > 0 && { "trusted-public-keys": trustedKeys }),
    ...settings,
  };
}

function settingText(value: z.output<typeof Setting>): string {
  return Array.isArray(value) ? value.join(" ") : String(value).trim();
}

function readTarball({ source = "", sha256 = "" }: Args, context: StepContext): Blob {
  const blob = context.readFile(source);
  if (blob.sha256 !== sha256)
    throw new KcoreError({
      code: "NIX_CHECKSUM",
      message: `${source} has another checksum than the state gives`,
      detail: `expected ${sha256}\nfound    ${blob.sha256}`,
      hint: "fetch it again, or correct sha256 after comparing it with its publisher's",
    });
  return blob;
}

function installPackages({ updateCache }: Args): Sh {
  return sh`have apt-get || refuse TOOL_MISSING "this node has no apt-get: use method: tarball"
(
${apt.apply({
  names: [{ name: "nix-bin" }, { name: "nix-setup-systemd" }],
  state: "present",
  updateCache,
  recommends: false,
  purge: false,
  lockTimeout,
})}
) || exit 1`;
}

/**
 * Sets `nix` (installed, absent), `version`, `daemon` (active, inactive), `boot` (enabled, disabled) and `answers`: yes if the
 * daemon replies that an impossible path is not valid, else no.
 */
const readNix = sh`nix=absent version=none
if have nix-store; then nix=installed version=$(nix-store --version 2>/dev/null) && version=\${version##* }; fi
daemon=inactive boot=disabled answers=no
for unit in nix-daemon.socket nix-daemon.service; do
  if systemctl is-active -q $unit 2>/dev/null; then daemon=active; fi
  case $(systemctl is-enabled $unit 2>/dev/null) in enabled | linked | static) boot=enabled ;; esac
done
if [ "$nix" = installed ]; then
  case $(NIX_REMOTE=daemon nix-store --check-validity /nix/store/00000000000000000000000000000000-none 2>&1) in
    *'is not valid'*) answers=yes ;;
  esac
fi`;

/** Prints the setting's last value in nix.conf; `(default)` if it is absent, which differs from an empty value. */
function printSetting(name: string): Sh {
  const start = `^[[:space:]]*${name}[[:space:]]*=`;
  return sh`if grep -q ${start} ${conf} 2>/dev/null; then
  sed -n ${`s/${start}[[:space:]]*//p`} ${conf} | sed 's/[[:space:]]*$//' | tail -n 1
else
  echo "(default)"
fi`;
}

/** Writes the setting to nix.conf, unless its value is this already, and then sets `changed`. */
function writeSetting(name: string, text: string): Sh {
  return sh`if [ "$(${printSetting(name)})" != ${text} ]; then
  mkdir -p /etc/nix && { [ -f ${conf} ] || : >${conf}; } || exit 1
  { grep -v "^[[:space:]]*"${name}"[[:space:]]*=" ${conf}; printf '%s = %s\n' ${name} ${text}; } >"$K_TMP/nix.conf"
  put_file "$K_TMP/nix.conf" ${conf} 0644 - - && changed=yes || exit 1
fi`;
}
