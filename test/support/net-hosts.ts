import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lab/run-command.ts";
import { hangLimit } from "./limit.ts";

/** A host of a test's network: a network namespace of its own, reachable from this process too. */
export interface NetHost {
  readonly address: string;
  /** What stands before a command that shall run there. */
  readonly through: readonly string[];
  /** Replaces the packet filter by these rules for what arrives here (nft(8), a rule a line); none: all passes. */
  readonly filter: (rules: readonly string[]) => Promise<void>;
}

export interface TestNetwork {
  readonly hosts: readonly NetHost[];
  /** The interface by which this process is part of it; gone with the network. */
  readonly link: string;
  readonly close: () => Promise<void>;
}

/**
 * Hosts on one bridge, for root. Each namespace is held by a process that ends when its stdin does, the bridge lies in such a
 * namespace too, and the kernel removes interfaces with their namespaces: nothing is left, however this process ends.
 */
export async function startNetwork(count: number): Promise<TestNetwork> {
  const holders: Holder[] = [];
  const net = await freeNetwork();
  const link = `kcore-${net.split(".")[2] ?? ""}`;
  const close = async (): Promise<void> => {
    await Promise.all(holders.map((holder) => holder.end()));
    // The kernel takes namespaces down in its own time.
    for (let waited = 0; existsSync(`/sys/class/net/${link}`) && waited < hangLimit; waited += 20) await sleep(20);
  };
  try {
    const bridge = await hold();
    holders.push(bridge);
    const inBridge = namespace(bridge);
    await must("ip", ["link", "add", link, "type", "veth", "peer", "name", "uplink", "netns", String(bridge.pid)]);
    await must("ip", ["address", "add", `${net}.254/24`, "dev", link]);
    await must("ip", ["link", "set", link, "up"]);
    await must(...withWords(inBridge, ["ip", "-batch", "-"]), {
      input: "link add br0 type bridge stp_state 0 forward_delay 0\nlink set br0 up\nlink set uplink master br0 up\n",
    });
    const hosts: NetHost[] = [];
    for (let index = 0; index < count; index++) {
      const holder = await hold();
      holders.push(holder);
      const into = namespace(holder);
      const address = `${net}.${index + 1}`;
      await must(...withWords(inBridge, ["ip", "-batch", "-"]), {
        input: `link add h${index} type veth peer name eth0 netns ${holder.pid}\nlink set h${index} master br0 up\n`,
      });
      await must(...withWords(into, ["ip", "-batch", "-"]), {
        input: `link set lo up\naddress add ${address}/24 dev eth0\nlink set eth0 up\n`,
      });
      const filter = async (rules: readonly string[]): Promise<void> => {
        const chain = `chain input {\ntype filter hook input priority 0\n${rules.join("\n")}\n}`;
        // One transaction: what was there is replaced at once.
        const input = `table ip fault\ndelete table ip fault\ntable ip fault {\n${chain}\n}\n`;
        await must(...withWords(into, ["nft", "-f", "-"]), { input });
      };
      hosts.push({ address, through: into, filter });
    }
    return { hosts, link, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Holder {
  readonly pid: number;
  readonly end: () => Promise<void>;
}

async function hold(): Promise<Holder> {
  const child = spawn("unshare", ["--net", "sh", "-c", "echo ready; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  await Promise.race([
    once(child.stdout, "data"),
    exited.then(([code]) => Promise.reject(new Error(`no network namespace: unshare ended with ${code}`))),
  ]);
  return {
    pid: child.pid ?? 0,
    async end() {
      child.stdin.end();
      await exited;
    },
  };
}

function namespace({ pid }: Holder): readonly string[] {
  return ["nsenter", `--net=/proc/${pid}/ns/net`];
}

function withWords(first: readonly string[], rest: readonly string[]): [string, readonly string[]] {
  const [command = "", ...args] = [...first, ...rest];
  return [command, args];
}

/** One of those set aside for tests of devices (RFC 2544) that nobody uses here. */
async function freeNetwork(): Promise<string> {
  const taken = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
  for (let number = process.pid % 256, tries = 0; tries < 256; number = (number + 1) % 256, tries++) {
    const net = `198.18.${number}`;
    if (!taken.some((address) => address.startsWith(`${net}.`)) && !existsSync(`/sys/class/net/kcore-${number}`))
      return net;
  }
  throw new Error("no network of 198.18.0.0/16 is free");
}
