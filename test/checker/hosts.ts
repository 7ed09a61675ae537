import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "./commands.ts";

/** A host: namespaces of its own for network and mounts, held by a process. */
export interface Host {
  readonly address: string;
  /** The words before a command that runs on this host. */
  readonly inside: readonly string[];
  /** A path of this host, as seen from here. */
  readonly path: (path: string) => string;
  /** Accepts every packet that no rule of these (nft(8)) drops. */
  readonly filter: (rules: readonly string[]) => Promise<void>;
}

export interface Hosts {
  readonly hosts: readonly Host[];
  readonly close: () => Promise<void>;
}

interface Keeper {
  readonly pid: number;
  readonly end: () => Promise<void>;
}

/**
 * Hosts on one bridge, with this process on it too; needs root. Each keeper ends with its stdin. The kernel removes interfaces, mounts and loop
 * devices with the namespaces, so that nothing is left in any case.
 */
export async function startHosts(count: number): Promise<Hosts> {
  const keepers: Keeper[] = [];
  const net = freeNetwork();
  const link = `chk-${net.split(".")[2] ?? ""}`;
  const close = async (): Promise<void> => {
    await Promise.all(keepers.map((keeper) => keeper.end()));
    for (let waited = 0; existsSync(`/sys/class/net/${link}`) && waited < 5_000; waited += 20) await sleep(20);
  };
  try {
    const bridge = await keep();
    keepers.push(bridge);
    await must(["ip", "link", "add", link, "type", "veth", "peer", "name", "uplink", "netns", `${bridge.pid}`]);
    await must(["ip", "address", "add", `${net}.254/24`, "dev", link]);
    await must(["ip", "link", "set", link, "up"]);
    const onBridge = [...into(bridge), "ip", "-batch", "-"];
    await must(
      onBridge,
      "link add br0 type bridge stp_state 0 forward_delay 0\nlink set br0 up\nlink set uplink master br0 up\n",
    );
    const hosts: Host[] = [];
    for (let index = 0; index < count; index++) {
      const keeper = await keep();
      keepers.push(keeper);
      const inside = into(keeper);
      const address = `${net}.${index + 1}`;
      await must(
        onBridge,
        `link add h${index} type veth peer name eth0 netns ${keeper.pid}\nlink set h${index} master br0 up\n`,
      );
      await must(
        [...inside, "ip", "-batch", "-"],
        `link set lo up\naddress add ${address}/24 dev eth0\nlink set eth0 up\n`,
      );
      hosts.push({
        address,
        inside,
        path: (path) => `/proc/${keeper.pid}/root${path}`,
        async filter(rules) {
          const chain = `chain input { type filter hook input priority 0;\n${rules.join("\n")}\n}`;
          await must(
            [...inside, "nft", "-f", "-"],
            `table ip fault\ndelete table ip fault\ntable ip fault {\n${chain}\n}\n`,
          );
        },
      });
    }
    return { hosts, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function keep(): Promise<Keeper> {
  const script = "mount --make-rprivate / && echo ready && exec cat";
  const words = ["--pdeathsig", "KILL", "unshare", "--net", "--mount", "sh", "-c", script];
  const child = spawn("setpriv", words, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const exited = once(child, "exit");
  await Promise.race([
    once(child.stdout, "data"),
    exited.then(([code]) => Promise.reject(new Error(`no namespaces: unshare ended with ${code}`))),
  ]);
  return {
    pid: child.pid ?? 0,
    async end() {
      child.stdin.end();
      await exited;
    },
  };
}

function into({ pid }: Keeper): readonly string[] {
  return ["nsenter", `--net=/proc/${pid}/ns/net`, `--mount=/proc/${pid}/ns/mnt`];
}

/** An unused network of those reserved for tests of devices (RFC 2544). */
function freeNetwork(): string {
  const taken = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
  for (let tries = 0, number = process.pid % 256; tries < 256; tries++, number = (number + 1) % 256) {
    const isTaken = taken.some((address) => address.startsWith(`198.19.${number}.`));
    if (!isTaken && !existsSync(`/sys/class/net/chk-${number}`)) return `198.19.${number}`;
  }
  throw new Error("no network of 198.19.0.0/16 is free");
}
