import { z } from "zod";
import { TlsFiles } from "#api/daemon-config.ts";

/** `/etc/kcore/node-agent.yaml`: names and defaults as in the kcore documentation. */
export const AgentConfig = z.object({
  /** Must be the id in the node's certificate; absent: it is taken from there. */
  nodeId: z.string().optional(),
  /** Kept for the agent's own API; nothing listens there yet. */
  listenAddr: z.string().default("0.0.0.0:9091"),
  /** One more endpoint, tried first. */
  controllerAddr: z.string().optional(),
  /** Endpoints of the controllers, `host:port`, in the order in which they are tried. */
  controllers: z.array(z.string()).default([]),
  dcId: z.string().default("DC1"),
  labels: z.record(z.string(), z.string()).default({}),
  roles: z.array(z.string()).default([]),
  /** Absent: the machine's host name. */
  hostname: z.string().optional(),
  /** Absent: the address from which the controller is reached. */
  address: z.string().optional(),
  tls: TlsFiles("node"),
  heartbeatIntervalSecs: z.number().positive().max(3600).default(15),
  /** Where `status.json` lies. */
  stateDir: z.string().default("/var/lib/kcore"),
});
export type AgentConfig = z.infer<typeof AgentConfig>;
