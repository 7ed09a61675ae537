import { createServer, type AddressInfo, type Socket } from "node:net";
import ssh2 from "ssh2";
import { SimulatedNode, SimulatedRun, type NodeBehaviour } from "./simulated-node.ts";

/** Many simulated nodes behind one SSH server on the loopback network. */
export interface NodeFarm {
  readonly port: number;
  readonly nodes: readonly SimulatedNode[];
  /** A roster of all nodes: one address each (127.1.x.y), one port, pinned host key. `key` is the file with {@link privateKey}. */
  roster(key: string): string;
  /** A private key that the server accepts. */
  readonly privateKey: string;
  stop(): Promise<void>;
}

/**
 * Starts a farm. Its server speaks real SSH (ssh2's) on every address of 127.0.0.0/8; the run names the node of a connection in its bootstrap.
 */
export async function startFarm(count: number, behaviour: NodeBehaviour = {}): Promise<NodeFarm> {
  const width = String(count).length;
  const nodes = Array.from(
    { length: count },
    (_, index) => new SimulatedNode(`n${String(index + 1).padStart(width, "0")}`, index, behaviour),
  );
  const byName = new Map(nodes.map((node) => [node.name, node]));
  // ECDSA, since ssh2 cannot read every 256th Ed25519 key that it makes (mscdex/ssh2#1513).
  const host = ssh2.utils.generateKeyPairSync("ecdsa", { bits: 256 });
  const login = ssh2.utils.generateKeyPairSync("ecdsa", { bits: 256 });
  const sockets = new Set<Socket>();
  const ssh = new ssh2.Server({ hostKeys: [host.private] }, (client) => {
    // The server executes nothing, so that any key may log in.
    client.on("authentication", (context) =>
      context.method === "publickey" ? context.accept() : context.reject(["publickey"]),
    );
    client.on("error", () => undefined);
    client.on("session", (accept) => {
      const session = accept();
      session.on("exec", (acceptExec) => {
        const channel = acceptExec();
        const run = new SimulatedRun(
          {
            write: (bytes) => void (channel.writable && channel.write(bytes)),
            close: () => {
              channel.exit(0);
              channel.end();
            },
          },
          (name) => byName.get(name),
        );
        channel.on("data", (chunk: Buffer) => run.push(chunk));
        channel.on("close", () => run.end());
        channel.on("error", () => run.end());
      });
    });
  });
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    ssh.injectSocket(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // No server can listen on 127.0.0.0/8 alone, so the next lines drop connections to other addresses.
    server.listen(0, "0.0.0.0", 1024, resolve);
  });
  server.on("connection", (socket) => void (socket.localAddress?.startsWith("127.") || socket.destroy()));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    nodes,
    privateKey: login.private,
    roster: (key) => {
      const hostKey = host.public.split(" ").slice(0, 2).join(" ");
      const entries = nodes.map(
        ({ name, index }) => `  ${name}: { address: ${addressOf(index)}, id: ${idOf(index)}, hostKeys: [${hostKey}] }`,
      );
      return `defaults: { user: root, port: ${port}, identityFile: ${key}, roles: [worker] }\nnodes:\n${entries.join("\n")}\n`;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function addressOf(index: number): string {
  return `127.1.${index >> 8}.${index & 255}`;
}

function idOf(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
}
