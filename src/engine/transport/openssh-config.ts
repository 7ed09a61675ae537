import { join } from "node:path";
import type { Endpoint } from "./host.ts";
import { hostFailure } from "./host-problems.ts";
import type { TrustedKeys } from "./host-key.ts";

/** A jump host, or the target, with its trusted keys. */
export interface TrustedHop {
  readonly endpoint: Endpoint;
  readonly trusted: TrustedKeys;
}

export interface OpenSshFiles {
  /** ssh_config(5). */
  readonly config: string;
  /** known_hosts, with an alias for each host. */
  readonly knownHosts: string;
}

/** Options for all hosts: the known keys count, and the command is the one that kcore gives. */
const always = [
  "StrictHostKeyChecking yes",
  "CheckHostIP no",
  "UpdateHostKeys no",
  "ConnectTimeout 10",
  "RemoteCommand none",
];

/** Options where no operator is there: no prompts, no forwarding, and no connection that outlives its process. */
const unattended = [
  "BatchMode yes",
  "ServerAliveInterval 5",
  "ServerAliveCountMax 3",
  "TCPKeepAlive yes",
  "ForwardAgent no",
  "ForwardX11 no",
  "ClearAllForwardings yes",
  "PermitLocalCommand no",
  "RequestTTY no",
  "Tunnel no",
  "EscapeChar none",
  "ControlPersist no",
];

/**
 * OpenSSH's configuration for a host. Of each option the first value counts: the roster's, then kcore's, then those of the user's and the
 * system's files, which can have a `Host` for the target's address. `checkEndpoint` has checked the values. For a host without a trusted
 * key here, ssh uses its own known_hosts files, strictly. `isAttended`: ssh may ask, and the user's files decide on forwarding.
 */
export function openSshFiles(
  hops: readonly [TrustedHop, ...TrustedHop[]],
  {
    folder,
    home,
    isAttended = false,
  }: { readonly folder: string; readonly home: string; readonly isAttended?: boolean },
): OpenSshFiles {
  const knownHosts = join(folder, "known_hosts");
  const last = hops.length - 1;
  const names = hops.map(({ endpoint }, index) => (index === last ? endpoint.address : `kcore-hop-${index + 1}`));
  const blocks = hops.map(({ endpoint, trusted }, index) => [
    `Host ${names[index]}`,
    ...(index === last ? [] : [`HostName ${endpoint.address.replaceAll("%", "%%")}`]),
    `Port ${endpoint.port}`,
    `User ${endpoint.user}`,
    ...(endpoint.identityFile === undefined
      ? []
      : [`IdentityFile ${quoted(endpoint.identityFile)}`, "IdentitiesOnly yes"]),
    ...(trusted.keys.length === 0
      ? []
      : [
          `HostKeyAlias ${aliasOf(index)}`,
          `UserKnownHostsFile ${quoted(knownHosts)}`,
          "GlobalKnownHostsFile /dev/null",
          "KnownHostsCommand none",
        ]),
    ...(index === last ? [] : ["ControlPath none", "ControlMaster no"]),
    ...(index === 0 ? (hops.length > 1 ? ["ProxyJump none"] : []) : [`ProxyJump ${names[index - 1]}`]),
  ]);
  const files = [join(home, ".ssh", "config"), "/etc/ssh/ssh_config"];
  const config = [
    ...blocks.flatMap(([head = "", ...lines]) => [head, ...lines.map((line) => `  ${line}`)]),
    "Host *",
    ...[...always, ...(isAttended ? [] : unattended)].map((line) => `  ${line}`),
    ...files.map((file) => `Include ${quoted(file)}`),
  ];
  const known = hops.flatMap(({ trusted }, index) => [
    ...trusted.keys.map(({ type, key }) => `${aliasOf(index)} ${type} ${key}`),
    ...trusted.revoked.map(({ type, key }) => `@revoked ${aliasOf(index)} ${type} ${key}`),
  ]);
  return { config: `${config.join("\n")}\n`, knownHosts: known.map((line) => `${line}\n`).join("") };
}

function aliasOf(index: number): string {
  return `kcore-${index + 1}`;
}

/** `%` begins a token of ssh_config(5), and a quote cannot be written. @throws KcoreError ENDPOINT_INVALID */
function quoted(path: string): string {
  if (/["\r\n]/.test(path))
    throw hostFailure({
      code: "ENDPOINT_INVALID",
      message: `ssh cannot be told of a file with a quote or a line break in its name: ${JSON.stringify(path)}`,
    });
  return `"${path.replaceAll("%", "%%")}"`;
}
