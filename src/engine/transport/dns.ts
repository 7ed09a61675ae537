import { lookup, Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { orAborted, withDeadline } from "./deadline.ts";
import { HostUnreachable, messageOf } from "./host-problems.ts";

/** Resolves host names; each found name is kept. */
export interface NameResolver {
  /**
   * All addresses of a name, within `deadline`; DNS gives IPv4 addresses before IPv6. An IP address resolves to itself.
   * @throws KcoreError DNS_FAILED, exit code 3.
   */
  resolve(name: string): Promise<readonly string[]>;
}

export interface NameResolverOptions {
  readonly hostsFile?: string;
  readonly resolvConf?: string;
  /** Milliseconds for a name, all tries together; 5000 by default. */
  readonly deadline?: number;
  /** `address:port` of name servers instead of the system's. */
  readonly servers?: readonly string[];
  /** The system's own resolver (nsswitch), asked last. */
  readonly system?: (name: string) => Promise<readonly string[]>;
}

/**
 * Looks names up in /etc/hosts, then by DNS, then by the system's resolver. That resolver, getaddrinfo(3), blocks one of libuv's few
 * threads, so it is not asked after the deadline: a dead name server costs 500 hosts 5 seconds together, not each (F-9).
 */
export function createNameResolver({
  hostsFile = "/etc/hosts",
  resolvConf = "/etc/resolv.conf",
  deadline = 5000,
  servers,
  system = async (name) => (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address),
}: NameResolverOptions = {}): NameResolver {
  const cache = new Map<string, Promise<readonly string[]>>();
  let hosts: Promise<ReadonlyMap<string, readonly string[]>> | undefined;

  const lookUp = async (name: string): Promise<readonly string[]> => {
    hosts ??= readFile(hostsFile, "utf8").then(parseHosts, () => new Map<string, readonly string[]>());
    const known = (await hosts).get(name.toLowerCase());
    if (known) return known;
    const resolver = new Resolver({ timeout: Math.ceil(deadline / 3), tries: 3 });
    try {
      if (servers) resolver.setServers([...servers]);
      const candidates = candidateNames(name, await readFile(resolvConf, "utf8").catch(() => ""));
      return await withDeadline(deadline, undefined, (signal) =>
        orAborted(
          askServers(resolver, candidates, () => system(name), signal),
          signal,
        ),
      );
    } catch (error) {
      resolver.cancel();
      throw dnsFailed(name, error);
    }
  };

  return {
    async resolve(name) {
      if (isIP(name.split("%")[0] ?? "") !== 0) return [name];
      let found = cache.get(name);
      if (!found) cache.set(name, (found = lookUp(name)));
      // A failure is not kept: a later try to connect can find the name server alive again.
      found.catch(() => cache.delete(name));
      return found;
    },
  };
}

function dnsFailed(name: string, cause: unknown): HostUnreachable {
  return new HostUnreachable(
    "dns",
    {
      code: "DNS_FAILED",
      message: `DNS finds no address for “${name}”: ${messageOf(cause)}`,
      hint: `try “getent hosts ${name}”, or write the node's IP address into the roster`,
    },
    cause,
  );
}

async function askServers(
  resolver: Resolver,
  candidates: readonly string[],
  system: () => Promise<readonly string[]>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  let failure: unknown;
  for (const candidate of candidates) {
    const answers = await Promise.allSettled([resolver.resolve4(candidate), resolver.resolve6(candidate)]);
    const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (addresses.length > 0) return addresses;
    signal.throwIfAborted();
    failure = answers.find((answer) => answer.status === "rejected")?.reason;
  }
  // The system's resolver also knows names of mDNS, of nsswitch modules, and of this machine.
  try {
    const addresses = await system();
    if (addresses.length > 0) return addresses;
  } catch (error) {
    failure ??= error;
  }
  throw failure;
}

/** The names to ask for in turn, by the `search` and `ndots` of resolv.conf(5). */
export function candidateNames(name: string, resolvConf: string): string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const lines = resolvConf.split("\n").map((line) => line.trim().split(/\s+/));
  const last = lines.findLast(([word]) => word === "search" || word === "domain");
  const suffixes = (last?.slice(1) ?? []).filter((suffix) => suffix !== ".").slice(0, 6);
  const ndots = lines
    .flatMap(([word, ...rest]) => (word === "options" ? rest : []))
    .findLast((o) => o.startsWith("ndots:"));
  const dots = name.split(".").length - 1;
  const searched = suffixes.map((suffix) => `${name}.${suffix.replace(/\.$/, "")}`);
  return dots >= Number(ndots?.slice(6) ?? 1) ? [name, ...searched] : [...searched, name];
}

/** hosts(5) as name → addresses in file order. */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (!address || isIP(address.split("%")[0] ?? "") === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      found.set(key, [...(found.get(key) ?? []), address]);
    }
  }
  return found;
}
