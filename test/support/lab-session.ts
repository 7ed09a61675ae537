import { createTransport } from "#engine/transport/connect.ts";
import type { LabNode } from "#lab/lab.ts";
import { sessionOn, type TestSession } from "./sessions.ts";

/** A session with a machine of the lab, with kcore's usual state folder. */
export function labSession(node: LabNode, user: string, options: Parameters<typeof sessionOn>[1] = {}): TestSession {
  const { address, port, identityFile, hostKey } = node;
  const common = { name: "n1", transport: "ssh", address, port, user, identityFile } as const;
  return sessionOn("/var/lib/kcore", {
    connect: createTransport({ home: "/nonexistent" }).connect,
    endpoint: { ...common, hostKeys: [hostKey], jump: [] },
    ...options,
  });
}
