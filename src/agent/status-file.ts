import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replaceFile, fileVersion } from "#base/file.ts";

/** The agent's part of `status.json`. Times are ISO 8601 in UTC. */
export interface AgentStatus {
  readonly state: "starting" | "connecting" | "running" | "stopped";
  readonly nodeId: string;
  readonly dc: string;
  readonly roles: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Whether a controller accepted the registration with the present certificate. */
  readonly registered: boolean;
  readonly approval?: string;
  readonly nodeStatus?: string;
  /** The endpoint of the controller that answered last. */
  readonly controller?: string;
  readonly lastHeartbeat?: string;
  readonly certificateExpires?: string;
  /** The reason why the certificate's renewal is overdue. */
  readonly renewal?: string;
  /** The node's health as the node itself finds it. */
  readonly health: { readonly ok: boolean; readonly reason?: string | undefined };
  /** The reason why no controller accepted the last heartbeat. */
  readonly error?: string;
  readonly version: string;
  readonly pid: number;
}

/** A file with the agent's part in one line: a runner cannot parse JSON, and copies this line into `status.json` when it writes that file. */
const ownFile = "agent.json";

/**
 * Replaces the agent's part in `status.json` and leaves the others: a run on this node writes its steps to the same file.
 * If the file changes meanwhile, it is read again, at most four times. A file that is no JSON object is replaced.
 */
export async function writeAgentStatus(file: string, agent: AgentStatus): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(join(dirname(file), ownFile), `${JSON.stringify(agent)}\n`);
  for (let attempt = 1; ; attempt++) {
    const before = await fileVersion(file);
    const content = `${JSON.stringify({ ...(await readStatusFile(file)), agent }, undefined, 2)}\n`;
    try {
      await replaceFile(file, content, { before: async () => refuseIfChanged(file, before, attempt) });
      return;
    } catch (error) {
      if (!(error instanceof WrittenMeanwhile)) throw error;
    }
  }
}

class WrittenMeanwhile extends Error {}

async function refuseIfChanged(file: string, before: string, attempt: number): Promise<void> {
  if (attempt < 5 && (await fileVersion(file)) !== before)
    throw new WrittenMeanwhile("another process wrote meanwhile");
}

/** The present contents of `status.json`: the agent's part and those of runs; empty when it cannot be read. */
export async function readStatusFile(file: string): Promise<object> {
  try {
    const value = JSON.parse(await readFile(file, "utf8")) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}
