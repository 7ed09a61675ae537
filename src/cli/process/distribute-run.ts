import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { omitUndefined } from "#base/omit-undefined.ts";
import { partOf } from "#engine/orchestrate/live-run.ts";
import type { DistributedWork, RunDependencies } from "#engine/orchestrate/run-types.ts";
import { toJson } from "#engine/orchestrate/values-json.ts";
import type { OpenSession } from "#engine/session/session.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { usageError } from "#errors/problem.ts";
import { packProject } from "#queue/archive.ts";
import { connectQueue } from "#queue/connect-queue.ts";
import { Coordinator } from "#queue/coordinator.ts";
import { KEPT_SECONDS, keys } from "#queue/keys.ts";
import { memberKey, openFrom, ownMember, sealFor } from "#queue/member-key.ts";
import type { RunPackage } from "#queue/messages.ts";
import type { QueueSettings } from "#queue/queue-settings.ts";
import type { LivingWorker } from "#queue/workers.ts";
import { kcoreVersion } from "./version.ts";

/** Hands a run over to the workers of a queue. `close` ends its part in the queue. */
export function distributor(
  settings: QueueSettings,
  deps: RunDependencies,
  factTerms: { readonly file: string } | undefined,
): { readonly distribute: NonNullable<RunDependencies["distribute"]>; readonly close: () => Promise<void> } {
  const open: (() => Promise<void> | void)[] = [];
  return {
    distribute: async (work) => {
      refuseUnfit(work);
      const { members } = settings;
      const workers = members.filter(({ roles }) => roles.includes("worker"));
      const own = await memberKey(deps.home, { make: false });
      await ownMember(members, own, "coordinator");
      const { redis, connect, close } = await connectQueue(settings, deps);
      open.push(close);
      const { hash, bytes } = await packProject(deps.project);
      if ((await redis.exists(keys.project(hash))) === 0) {
        const sealed = await sealFor(workers, own, `project ${hash}`, { archive: bytes.toString("base64") });
        await redis.set(keys.project(hash), sealed, "EX", KEPT_SECONDS);
      } else await redis.expire(keys.project(hash), KEPT_SECONDS);
      const key = randomBytes(32);
      const run = { id: deps.runId, part: partOf(deps.earlier), key };
      const what: RunPackage = {
        version: kcoreVersion(),
        runId: run.id,
        part: run.part,
        nonce: deps.nonce,
        who: deps.who,
        began: work.began,
        request: toJson(work.request),
        project: hash,
        key: key.toString("base64"),
        ...omitUndefined({ revision: deps.revision, dirty: deps.dirty }),
        ...(factTerms && existsSync(factTerms.file) && { factTerms: readFileSync(factTerms.file, "utf8") }),
      };
      const sealed = await sealFor(workers, own, `run ${run.id} ${run.part}`, what);
      await redis.set(keys.package(run.id, run.part), sealed, "EX", KEPT_SECONDS);
      const seen = new Map<string, LivingWorker | undefined>();
      const coordinator = new Coordinator({
        redis,
        connect,
        run,
        version: what.version,
        ask: deps.ask,
        warn: (text) => deps.emit({ type: "warning", text }),
        openWorker: async (mark) => {
          const name = mark.toString("base64", 0, 64);
          if (!seen.has(name)) {
            const opened = await openFrom(workers, own, "worker", mark);
            const worker = opened?.body as LivingWorker | undefined;
            seen.set(name, worker?.name === opened?.member.name ? worker : undefined);
          }
          return seen.get(name);
        },
      });
      await coordinator.start();
      open.push(() => coordinator.close());
      const openSession: OpenSession = (session) =>
        session.node.transport === "local" ? deps.openSession(session) : coordinator.openSession(session);
      return openSession;
    },
    close: async () => {
      for (const one of open.toReversed()) await one();
    },
  };
}

/** Refuses work that no worker can do as this machine would. @throws KcoreError QUEUE_NODE, USAGE */
function refuseUnfit({ request, roster, nodes }: DistributedWork): void {
  if (request.feed === "nodes") throw usageError("--feed nodes works without a queue alone", "--feed bastion");
  const problems = new Problems();
  for (const name of nodes) {
    const node = roster.nodes.get(name);
    if (!node || node.transport === "local" || node.hostKeys.length > 0) continue;
    problems.add({
      code: "QUEUE_NODE",
      message: `“${name}” has no host key in the roster, so a worker cannot know it`,
      at: roster.positions.get(name),
      hint: `kcore roster trust ${name}`,
    });
  }
  problems.throwIfAny();
}
