import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./ports.ts";

export interface DownloadServer {
  readonly port: number;
  readonly url: string;
  /** The log's lines since the last call, such as `GET /file - -`. */
  asked(): string[];
  stop(): void;
}

/** Starts download-server.ts, with its log in this folder. */
export async function serveDownloads(folder: string): Promise<DownloadServer> {
  const [port, log] = [await freePort(), join(folder, "log")];
  const server = join(import.meta.dirname, "download-server.ts");
  const child = spawn(process.execPath, [server, String(port), log], { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    try {
      await fetch(`${url}/none`);
      break;
    } catch {
      await sleep(20);
    }
  }
  writeFileSync(log, "");
  return {
    port,
    url,
    asked: () => {
      const lines = readFileSync(log, "utf8").split("\n").filter(Boolean);
      writeFileSync(log, "");
      return lines;
    },
    stop: () => void child.kill(),
  };
}
