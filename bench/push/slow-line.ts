import { createServer, Socket, type AddressInfo, type Server } from "node:net";

/** Bytes that TCP sends at once on a new connection (RFC 6928: ten segments). */
const FIRST_WINDOW = 14_600;

/**
 * A line as a distant node's. Each byte takes half a round trip, and a connection reaches the server after one and a
 * half. The window doubles with each round trip, as TCP's does at the start. It has only the properties that matter to
 * a push, and no faults.
 */
export async function startSlowLine(
  host: string,
  port: number,
  rtt: number,
  onSent: (bytes: number) => void,
): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => {
    // The client is connected when the server's answer is back; the server accepts half a round trip later.
    after(rtt, () => {
      const upstream = new Socket({ allowHalfOpen: true }).setNoDelay(true);
      after(rtt / 2, () => upstream.connect({ host, port }));
      carry(client, upstream, rtt, onSent);
      carry(upstream, client, rtt, () => undefined);
      client.resume();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return server;
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function carry(from: Socket, to: Socket, rtt: number, onSent: (bytes: number) => void): void {
  let [window, underWay, over] = [FIRST_WINDOW, 0, false];
  const queue: Buffer[] = [];
  const send = () => {
    while (queue.length > 0 && (underWay < window || rtt === 0)) {
      const first = queue[0] ?? Buffer.alloc(0);
      const part = rtt === 0 ? first : first.subarray(0, window - underWay);
      if (part.length === first.length) queue.shift();
      else queue[0] = first.subarray(part.length);
      underWay += part.length;
      after(rtt / 2, () => !to.destroyed && to.write(part));
      after(rtt, () => {
        underWay -= part.length;
        window += part.length;
        send();
      });
    }
    if (over && queue.length === 0) after(rtt / 2, () => to.end());
  };
  from.on("data", (chunk: Buffer) => {
    onSent(chunk.length);
    queue.push(chunk);
    send();
  });
  from.on("end", () => {
    over = true;
    send();
  });
  from.on("error", () => to.destroy());
}

/** Timers of equal length fire in the order they were set, so bytes stay in order. */
function after(milliseconds: number, work: () => void): void {
  if (milliseconds === 0) work();
  else setTimeout(work, milliseconds);
}
