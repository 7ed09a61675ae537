import { z } from "zod";
import { hostPort } from "../step/host-port.ts";
import { defineModule } from "../step/define.ts";
import { listening, tcpFunction } from "../step/fragments/ports.ts";
import { sh } from "../step/sh.ts";

const HostName = z.string().regex(/^[A-Za-z0-9_.:][A-Za-z0-9_.:-]{0,252}$/, "must be a host name or an address");

/**
 * ```yaml
 * port.open: { port: 9090 }
 * ```
 * For the node's own loopback the step reads the kernel's socket tables. For other hosts the node connects by nc, or by
 * bash if it has no nc. The check is repeated every 2 s, 30 times, unless the step has `retry`.
 */
export const portOpen = defineModule({
  name: "port.open",
  summary: "Waits until a TCP port accepts connections, as seen from the node.",
  alsoKnownAs: ["wait_for", "server.wait", "tcp", "listen"],
  args: z.strictObject({
    port: z.number().int().min(1).max(65_535).describe("The TCP port."),
    host: HostName.default("127.0.0.1").describe("The host, as the node sees it."),
    state: z.enum(["open", "closed"]).default("open").describe("The state to wait for."),
  }),
  refusals: ["TOOL_MISSING"],
  step: ({ port, host, state }) => {
    const isLoopback = ["127.0.0.1", "::1", "localhost"].includes(host);
    const name = hostPort(host, port);
    return {
      effects: { writes: [], reads: [{ is: "system" }] },
      want: { [name]: state },
      probe: isLoopback
        ? sh`${listening(port, { loopback: true })}
if [ -n "$sockets" ]; then fact ${name} open; else fact ${name} closed; fi`
        : sh`${tcpFunction}
tcp ${host} ${port} 5
case $? in
  0) fact ${name} open ;;
  2) refuse TOOL_MISSING "neither nc (package netcat-openbsd) nor bash is there to connect with" ;;
  *) fact ${name} closed ;;
esac`,
      retry: { attempts: 31, interval: 2 },
      timeout: 240,
    };
  },
});
