/* oxlint-disable typescript/no-misused-promises, typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access, typescript/no-unsafe-return -- plain JavaScript for a browser: no type of the DOM is known here */
// Hears what is new on this page and puts it in its place, and lets the times of what still runs go on. What it puts in was
// escaped by the server.
"use strict";
(() => {
  const { news, version } = document.body.dataset;
  const byId = (id) => document.getElementById(id);
  const made = (source) => {
    const template = document.createElement("template");
    template.innerHTML = source;
    return template.content.firstElementChild;
  };

  // ---- times that go on ---------------------------------------------------------------------------------------------

  // The bastion's clock counts, not this machine's.
  let ahead = Date.now() - Number(document.body.dataset.now);
  const axis = byId("axis");
  const from = Number(axis?.dataset.from);
  let span = axis && { from, to: from + Number(axis.dataset.long), isOver: byId("lanes").dataset.over !== undefined };
  const pass = () => {
    const now = Date.now() - ahead;
    for (const cell of document.querySelectorAll("[data-since]")) {
      const whole = Math.max(0, Math.floor((now - Number(cell.dataset.since)) / 1000));
      const [minutes, seconds] = [Math.floor(whole / 60), whole % 60];
      const text = minutes === 0 ? `${seconds} s` : `${minutes} min ${String(seconds).padStart(2, "0")} s`;
      if (cell.textContent !== text) cell.textContent = text;
    }
    if (!span) return;
    // Stages that run go on up to now.
    for (const bar of document.querySelectorAll("#stages [data-from]")) {
      const [start, wide] = [Number(bar.dataset.from), bar.ownerSVGElement.viewBox.baseVal.width];
      const long = Math.max(1, Math.round(Math.min(1, (now - span.from) / (span.to - span.from)) * wide) - start);
      bar.setAttribute("d", `M${start} 7h${long}v6h-${long}z`);
    }
    const share = span.isOver ? 1 : Math.min(1, Math.max(0, (now - span.from) / (span.to - span.from)));
    byId("lanes")?.style.setProperty("--now", share.toFixed(4));
  };
  setInterval(pass, 500);

  // ---- news ---------------------------------------------------------------------------------------------------------

  /** A row that is open stays open, and is asked for what is new in it. */
  const putRow = (row, next) => {
    const hadFocus = row.firstElementChild === document.activeElement;
    for (const { name, value } of next.attributes) if (name !== "open") row.setAttribute(name, value);
    row.firstElementChild.replaceWith(next.firstElementChild);
    if (hadFocus) row.firstElementChild.focus({ preventScroll: true });
  };
  const putOrder = (rows, order) => {
    const focused = document.activeElement;
    let at = rows.firstElementChild;
    for (const id of order) {
      const row = byId(id);
      if (row === at) at = at.nextElementSibling;
      else if (row) rows.insertBefore(row, at);
    }
    if (focused !== document.activeElement && rows.contains(focused)) focused.focus({ preventScroll: true });
  };
  const put = (parts) => {
    const changed = [];
    let arranged;
    for (const [id, source] of parts) {
      if (id === "rows") {
        arranged = JSON.parse(source);
        continue;
      }
      const [old, next] = [byId(id), made(source)];
      if (!old) {
        if (next?.matches(".lane")) byId("rows")?.append(next);
        continue;
      }
      if (old.matches(".lane")) {
        putRow(old, next);
        changed.push(old);
      } else {
        // A link that had the focus has it again.
        const link = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        old.replaceWith(next);
        if (link !== null) [...next.querySelectorAll("a")].find((a) => a.getAttribute("href") === link)?.focus();
      }
    }
    if (arranged) {
      span = arranged;
      // A run that had not begun when the page was opened has no rows to put anything into.
      if (!axis) return arranged.order.length > 0 && location.reload();
      putOrder(byId("rows"), arranged.order);
    }
    // Bars are in milliseconds: how many of them a row spans now is all that a longer axis changes (bars.ts).
    const box = span && `0 0 ${span.to - span.from} 20`;
    for (const bars of document.querySelectorAll("#rows > .lane > summary .bars"))
      if (bars.getAttribute("viewBox") !== box) bars.setAttribute("viewBox", box);
    if (byId("lanes"))
      byId("lanes").dispatchEvent(
        new CustomEvent("kcore:news", { detail: { changed, ...(span && { long: span.to - span.from }) } }),
      );
    pass();
  };

  if (news === undefined) return;
  const link = byId("link");
  const say = (text, isLost) => {
    if (link.textContent !== text) link.textContent = text;
    link.classList.toggle("lost", isLost);
  };
  const source = new EventSource(`${news}${news.includes("?") ? "&" : "?"}from=${encodeURIComponent(version)}`);
  source.addEventListener("open", () => say(span?.isOver ? "" : "live", false));
  source.addEventListener("error", () => say("not connected: what stands here may be old", true));
  source.addEventListener("message", ({ data }) => {
    const { now, parts } = JSON.parse(data);
    ahead = Date.now() - now;
    put(parts);
    say(span?.isOver ? "" : "live", false);
  });
  pass();
})();
