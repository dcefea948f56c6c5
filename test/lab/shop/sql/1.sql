CREATE TABLE orders (id bigserial PRIMARY KEY, note text);
