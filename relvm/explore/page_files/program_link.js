"use strict";
// Links that contain a program and its build options: JSON, compressed by deflate, in base64url.

const MAX_LINK = 32_768; // characters of a program in a link; longer addresses get lost in mails and chats

// Return what a link contains of a request.  Throw an Error if that is too long.
async function packed(values) {
  const bytes = await collected(new TextEncoder().encode(JSON.stringify(values)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const link = text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (link.length > MAX_LINK)
    throw new Error(`the program is too large for a link: it takes ${link.length.toLocaleString("en")} characters of at most ` +
      `${MAX_LINK.toLocaleString("en")}. Send the program as a file.`);
  return link;
}

// Return the request in a link, which anybody may have written.  Throw an Error unless it has the fields of `form`, with
// values of the same types.   mostBytes: limit on the size of the JSON, which prevents decompression bombs.
async function unpacked(link, form, mostBytes) {
  if (link.length > MAX_LINK) throw new Error(`it has more than ${MAX_LINK.toLocaleString("en")} characters`);
  const tooLarge = new Error(`its program has more than ${mostBytes.toLocaleString("en")} bytes`);
  let values;
  try {
    const bytes = Uint8Array.from(atob(link.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
    const text = await collected(bytes, new DecompressionStream("deflate-raw"), mostBytes);
    if (!text) throw tooLarge;
    values = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch (error) {
    throw error === tooLarge ? error : new Error("it is damaged or incomplete");
  }
  const names = (object) => Object.keys(object).sort().join();
  const isStrings = (list) => Array.isArray(list) && list.every((each) => typeof each === "string");
  const isAlike = (value, example) => (Array.isArray(example) ? isStrings(value) : typeof value === typeof example);
  if (values === null || typeof values !== "object" || names(values) !== names(form) || !Object.keys(form).every((name) => isAlike(values[name], form[name])))
    throw new Error("it was not made by this version of relvm");
  return values;
}

// Return the bytes that a stream makes of others, or null as soon as there are more than `most`.
async function collected(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(), chunks = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    chunks.push(part.value);
    length += part.value.length;
    if (length > most) { reader.cancel(); return null; }
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
