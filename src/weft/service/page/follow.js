// Answers as they come. EventSource cannot send a token, so the events are read from a response by hand.

import { request } from "./api.js";

const RETRY = 2000;

// Calls `take` with each portion {query, batch, count, rows} until the signal says stop; comes back by itself.
export async function follow(names, take, signal) {
  const parameters = new URLSearchParams(names.map((name) => ["query", name]));
  let last = null;
  while (!signal.aborted) {
    try {
      const response = await request(`/answers/live?${parameters}`, { headers: last ? { "Last-Event-ID": last } : {}, signal });
      for await (const event of events(response.body)) {
        if (event.id) last = event.id;
        if (event.kind === "answers") take(JSON.parse(event.data));
        else if (event.kind === "end") break;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.problem?.status === 404) return; // somebody has left: whoever follows asks again without it
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) yield parse(part);
  }
}

function parse(part) {
  const event = { kind: "message", id: null, data: "" };
  for (const line of part.split("\n")) {
    if (line.startsWith("event: ")) event.kind = line.slice(7);
    else if (line.startsWith("id: ")) event.id = line.slice(4);
    else if (line.startsWith("data: ")) event.data += line.slice(6);
  }
  return event;
}
